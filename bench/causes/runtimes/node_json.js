const o = []; for (let i = 0; i < 20000; i++) o.push({a:i,b:'x'.repeat(20),c:[i,i,i]});
let n=0; for (let r=0;r<+(process.argv[2]||25);r++){ n+=JSON.parse(JSON.stringify(o)).length; }
console.log(n);
