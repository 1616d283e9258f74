using System;
using System.Collections.Generic;

class World {
    static void Main(string[] words) {
        long total = 0;
        if (words[0] == "churn") {
            for (int r = 0; r < 200; r++) {
                var kept = new List<byte[]>();
                for (int i = 0; i < 1000; i++) kept.Add(new byte[8192]);
                total += kept.Count;
            }
        } else if (words[0] == "touch") {
            var kept = new List<byte[]>();
            for (int i = 0; i < 70000; i++) kept.Add(new byte[2000]);
            total = kept.Count;
        } else {
            for (long i = 0; i < 500000000; i++) total = total * 3 + (i & 7);
        }
        Console.WriteLine(total);
    }
}
