// Short-lived objects that survive a few scavenges: the young generation is copied again and again.
let sum = 0;
const rounds = +process.argv[2] || 60;
for (let r = 0; r < rounds; r++) {
  const live = [];
  for (let i = 0; i < 60000; i++) {
    live.push({ id: i, name: 'item' + i, tags: [i, i + 1, i + 2], at: { x: i, y: r } });
  }
  sum += live.reduce((a, b) => a + b.at.x + b.tags[1], 0);
}
console.log(sum);
