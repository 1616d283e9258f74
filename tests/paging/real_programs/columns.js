// Columns of numbers in V8's heap, each an object of a quarter MiB somewhere in the address space,
// and strings; sums along and across. Argument: number of columns.
"use strict";
const count = Number(process.argv[2]);
const rows = 30000;
let state = 12345;
const next = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0);

const columns = [];
for (let number = 0; number < count; number++) {
  const column = new Array(rows);
  for (let row = 0; row < rows; row++) column[row] = next() / 7;
  columns.push({ name: `column ${number}`, column });
}
let along = 0;
for (const { name, column } of columns) {
  for (let row = 0; row < rows; row++) column[row] = Math.sqrt(column[row]) + name.length;
  along += column.reduce((sum, value) => sum + value);
}
let across = 0;
for (let number = 0; number < count; number++) across += columns[(number * 7919) % count].column[(number * 104729) % rows];
console.log(JSON.stringify({ columns: count, along: along.toFixed(3), across: across.toFixed(6) }));
