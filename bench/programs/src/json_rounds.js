// Parses and prints JSON again and again: V8's young generation at work.
const rows = Array.from({ length: 20000 }, (_, i) => ({ id: i, name: `item ${i}`, tags: [i, i + 1] }));
let text = JSON.stringify(rows);
let total = 0;
for (let round = 0; round < 120; round++) {
  const copy = JSON.parse(text);
  copy[round].id += 1;
  text = JSON.stringify(copy);
  total += text.length;
}
console.log(total);
