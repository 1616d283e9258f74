/** Live arrays together with garbage: the collector moves memory that the pager pages. */
public class Arrays {
    static int expected(int array, int index) {
        return array * 31 + index * 7;
    }

    public static void main(String[] arguments) {
        int[][] arrays = new int[Integer.parseInt(arguments[0])][];
        long wrong = 0, sum = 0;
        for (int round = 0; round < 3; round++) {
            for (int array = 0; array < arrays.length; array++) {
                int[] now = new int[256 * 1024];
                for (int i = 0; i < now.length; i++) now[i] = expected(array, i + round);
                if (arrays[array] != null)
                    for (int i = 0; i < now.length; i += 97)
                        if (arrays[array][i] != expected(array, i + round - 1)) wrong++;
                arrays[array] = now;
            }
        }
        for (int[] array : arrays) for (int value : array) sum += value;
        System.out.println(wrong + " wrong, sum " + sum);
    }
}
