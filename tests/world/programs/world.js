const what = (globalThis.Deno ? Deno.args : process.argv.slice(2))[0];
let total = 0;
if (what === 'churn') {
  for (let r = 0; r < 12; r++) {
    const list = [];
    for (let i = 0; i < 100000; i++) list.push({ a: i, b: 'x' + i });
    total += list.length;
  }
} else if (what === 'large') {
  for (let r = 0; r < 30; r++) { const b = new Uint8Array(40 << 20); b.fill(1); total += b[r]; }
} else if (what === 'touch') {
  const kept = [];
  for (let i = 0; i < 90000; i++) kept.push(new Array(250).fill(i));
  total = kept.length;
} else {
  const list = new Int32Array(1000).map((_, i) => i);
  for (let i = 0; i < 400000000; i++) total = (total + list[i % 1000]) | 0;
}
console.log(total);
