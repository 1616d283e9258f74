let n=0; for (let r=0;r<+(process.argv[2]||400);r++){ const b=Buffer.alloc(4<<20); b.fill(1); n+=b[r]; }
console.log(n);
