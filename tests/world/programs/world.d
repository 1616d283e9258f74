import std.stdio;

void main(string[] words) {
    ulong total;
    switch (words[1]) {
        case "churn":
            foreach (r; 0 .. 60) { ubyte[][] kept; foreach (i; 0 .. 256) { auto b = new ubyte[65536]; b[] = 1; kept ~= b; } total += kept.length; }
            break;
        case "touch":
            ubyte[][] kept;
            foreach (i; 0 .. 70000) { auto b = new ubyte[2000]; b[] = 1; kept ~= b; }
            total = kept.length;
            break;
        default:
            foreach (ulong i; 0 .. 300_000_000) total = total * 3 + (i & 7);
    }
    writeln(total);
}
