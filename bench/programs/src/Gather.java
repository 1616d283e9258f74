/** Reads a large array at random positions: nearly every read misses the TLB with base pages. */
public class Gather {
    public static void main(String[] arguments) {
        long[] values = new long[1 << 26];
        for (int i = 0; i < values.length; i++) values[i] = i;
        long total = 0;
        long place = 88172645463325252L;
        for (int i = 0; i < 30_000_000; i++) {
            place ^= place << 13;
            place ^= place >>> 7;
            place ^= place << 17;
            total += values[(int) (place & (values.length - 1))];
        }
        System.out.println(total);
    }
}
