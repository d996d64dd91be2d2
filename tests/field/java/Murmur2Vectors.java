// SPDX-License-Identifier: BSD-2-Clause
//
// Writes what the Java client's hash makes of a few hundred keys: Murmur2Vectors FILE
//
// A line is the key in hexadecimal digits ("-" for the empty one), Utils.murmur2() as a signed number, and
// Utils.toPositive() of it.
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.common.utils.Utils;

public final class Murmur2Vectors {
    private static final String[] TEXTS = {
        "21", "foobar", "abc", "order-17", "order-17#0", "order-17#1", "s#salt_3", "s#SALT_3", "s_SALT_3", "room#1",
        "a-little-bit-long-string", "a-little-bit-longer-string", "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
        "Z\u00fcrich", "\u6771\u4eac#2", "\ud83d\ude80", "\u0000", "\u007f\u0080\u07ff\u0800\uffff",
        "550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000#7"};

    private Murmur2Vectors() {
    }

    private static void line(PrintWriter out, byte[] key) {
        StringBuilder hex = new StringBuilder();
        for (byte b : key)
            hex.append(String.format("%02x", b));
        int hash = Utils.murmur2(key);
        out.print((key.length == 0 ? "-" : hex) + " " + hash + " " + Utils.toPositive(hash) + "\n");
    }

    private static byte[] filled(int length, int value) {
        byte[] key = new byte[length];
        java.util.Arrays.fill(key, (byte) value);
        return key;
    }

    static void write(String path) throws java.io.IOException {
        Random random = new Random(2);
        try (PrintWriter out = new PrintWriter(path, StandardCharsets.US_ASCII)) {
            for (String text : TEXTS)
                line(out, text.getBytes(StandardCharsets.UTF_8));
            // Every length from 0 on, so every length of the tail, with the extreme bytes and with any bytes.
            for (int length = 0; length <= 40; length++) {
                for (int value : new int[] {0x00, 0x7f, 0x80, 0xff})
                    line(out, filled(length, value));
                for (int i = 0; i < 2; i++) {
                    byte[] key = new byte[length];
                    random.nextBytes(key);
                    line(out, key);
                }
            }
            // Each value of a byte, at the end of a block and in the tail.
            for (int value = 0; value < 256; value += 5)
                line(out, new byte[] {1, 2, 3, (byte) value, (byte) value});
            for (int length : new int[] {63, 64, 65, 255, 256, 257, 1000})
                line(out, filled(length, length));
            if (out.checkError())
                throw new java.io.IOException(path + " can't be written");
        }
    }

    public static void main(String[] args) throws java.io.IOException {
        write(args[0]);
    }
}
