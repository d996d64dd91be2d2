// SPDX-License-Identifier: BSD-2-Clause
//
// An application that salts its hot sessions, as such applications are written: kafka-clients, the client's own
// partitioner, the sequence in the JSON payload, nothing of unsalt. It writes any number of topics in one run:
//
//   SaltingProducer BOOTSTRAP VECTORS {SHAPE TOPIC PARTITIONS LANES LOG}...
//
// VECTORS is a file that receives hashes of the client's, see Murmur2Vectors. SHAPE says how the key is salted:
//
//   counted  key "<session>#<k>", k = number mod LANES
//   random   key "<session>#salt_<k>", k at random
//   turns    key "<session>_SALT_<k>", k in turn over all sessions
//   raw      key "<session>", and the partition is the one that "<session>#<k>" would have, k at random
//
// LOG receives a line for each acknowledged record: session, epoch, number, partition, offset and key, by tabs.
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Utils;

public final class SaltingProducer {
    private static final int HOT = 1500;
    private static final int WARM = 900;
    private static final int COLD = 15;

    private final KafkaProducer<String, String> producer;
    private final String shape;
    private final String topic;
    private final int partitions;
    private final int lanes;
    private final PrintWriter log;
    private final Map<String, Long> numbers = new LinkedHashMap<>();
    private final Random random = new Random(17);
    private int turn;
    private volatile Exception failure;

    private SaltingProducer(KafkaProducer<String, String> producer, String[] args, int at, PrintWriter log) {
        this.producer = producer;
        shape = args[at];
        topic = args[at + 1];
        partitions = Integer.parseInt(args[at + 2]);
        lanes = Integer.parseInt(args[at + 3]);
        this.log = log;
    }

    private int salt(long number) {
        switch (shape) {
        case "counted":
            return (int) (number % lanes);
        case "turns":
            return turn++ % lanes;
        default:
            return random.nextInt(lanes);
        }
    }

    // One counter for a session over all its salted keys and its raw one.
    private void send(String session, boolean hot) {
        long number = numbers.merge(session, 1L, Long::sum);
        String key = session;
        Integer partition = null;
        if (hot) {
            int k = salt(number);
            if (shape.equals("raw")) {
                byte[] salted = (session + "#" + k).getBytes(StandardCharsets.UTF_8);
                partition = Utils.toPositive(Utils.murmur2(salted)) % partitions;
            } else {
                String mark = shape.equals("random") ? "#salt_" : shape.equals("turns") ? "_SALT_" : "#";
                key = session + mark + k;
            }
        }
        // Whoever takes the first "globalSeq" of the text for the sequence would be wrong.
        String payload = "{\"sessionId\":\"" + session + "\",\"data\":{\"globalSeq\":0,\"text\":\"token " + number
            + "\"},\"type\":\"chunk\",\"globalSeq\":" + number + "}";
        String sentKey = key;
        producer.send(new ProducerRecord<>(topic, partition, key, payload), (metadata, exception) -> {
            if (exception != null) {
                failure = exception;
                return;
            }
            log.print(session + "\t0\t" + number + "\t" + metadata.partition() + "\t" + metadata.offset() + "\t"
                + sentKey + "\n");
        });
    }

    // Two hot sessions, one that warms up and cools down again, and cold ones, woven.
    private void run() throws Exception {
        for (int i = 0; i < HOT; i++) {
            send("hot-a", true);
            if (i % 2 == 0)
                send("hot-\u00fc", true);
            if (i < WARM)
                send("warm", i >= WARM / 3 && i < WARM * 2 / 3);
            if (i % 10 == 0)
                send("cold-" + i / 10 % COLD, false);
        }
        producer.flush();
        if (failure != null)
            throw failure;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        properties.put(ProducerConfig.ACKS_CONFIG, "all");
        properties.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        properties.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        Murmur2Vectors.write(args[1]);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (int at = 2; at + 5 <= args.length; at += 5) {
                Path path = Path.of(args[at + 4]);
                try (PrintWriter log = new PrintWriter(Files.newBufferedWriter(path, StandardCharsets.UTF_8))) {
                    new SaltingProducer(producer, args, at, log).run();
                    if (log.checkError())
                        throw new IllegalStateException("the log can't be written");
                }
            }
        }
    }
}
