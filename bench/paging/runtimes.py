"""Managed heaps: objects that stay, beside such that are dropped."""
import subprocess

from launching import PYTHON, answer, folder, needs

# Objects that stay are visited in an order of their own, some are replaced, and as many die young.
JAVA = """
public class Heap {
    static final class Node { long value; byte[] body; Node(long value) { this.value = value; body = new byte[72]; body[8] = (byte) value; } }
    public static void main(String[] words) {
        int count = Integer.parseInt(words[0]);
        Node[] all = new Node[count];
        for (int i = 0; i < count; i++) all[i] = new Node(i);
        long sum = 0;
        for (int round = 0; round < 4; round++)
            for (int i = 0; i < count; i++) {
                int at = (int) ((long) i * 7919 % count);
                Node young = new Node(i);
                sum += all[at].value + (all[at].body[8] == (byte) all[at].value ? 0 : 1000000007L) + young.body.length;
                if (i % 10 == round) all[at] = new Node(all[at].value);
            }
        System.out.println(sum);
    }
}
"""
NODE = """
const count = Number(process.argv[1]);
const all = [];
for (let i = 0; i < count; i++) all.push({ value: i, name: "x" + i, list: [i, i + 1] });
let sum = 0;
for (let round = 0; round < 4; round++)
  for (let i = 0; i < count; i++) {
    const at = (i * 7919) % count, young = { value: 1, list: [i] };
    sum += all[at].value + (all[at].name === "x" + at && all[at].list[1] === at + 1 ? 0 : 1e9) + young.value;
    if (i % 10 === round) all[at] = { value: at, name: "x" + at, list: [at, at + 1] };
  }
console.log(sum);
"""
# Each collection goes over all objects several times, in the order in which they were made.
COLLECT = """
import gc, sys
count = int(sys.argv[1])
all = [{"number": [i, str(i)], "pair": (i, i + 1, [i])} for i in range(count)]
for round in range(12):
    gc.collect()
print(sum(one["number"][0] + one["pair"][2][0] for one in all), sum(one["number"][1] == str(i) for i, one in enumerate(all)))
"""


def java(mib, prefix, collector, heap_mib):
    count = (mib << 20) // 170
    with folder() as place:
        (place / "Heap.java").write_text(JAVA)
        subprocess.run([needs("javac"), "-d", place, place / "Heap.java"], check=True)
        expected = 4 * (count * (count - 1) // 2 + 72 * count)
        words = [needs("java"), f"-XX:+Use{collector}", f"-Xmx{heap_mib}m", "-cp", place, "Heap", count]
        return answer(prefix, words, str(expected))


def java_g1(mib, prefix):
    return java(mib, prefix, "G1GC", mib * 9 // 10)


def java_zgc(mib, prefix):
    return java(mib, prefix, "ZGC", mib * 5 // 4)


def node(mib, prefix):
    count = (mib << 20) // 310
    expected = 4 * (count * (count - 1) // 2 + count)
    return answer(prefix, [needs("node"), "--max-old-space-size=8192", "-e", NODE, count], str(expected))


def collect(mib, prefix):
    # The interpreter takes 9 MiB.
    count = ((mib - 9) << 20) // 552
    return answer(prefix, [PYTHON, "-c", COLLECT, count], f"{count * (count - 1)} {count}")
