// SPDX-License-Identifier: BSD-2-Clause
// Works off the first records of a topic with Confluent Parallel Consumer, doing in each what bench/work.c does, and
// prints: seconds, seconds of processor time (of the whole process), records. All three from the start of the first
// record's work to the end of the last one's, so the start of the JVM isn't counted, and its warming up is.
//
//   Peer BOOTSTRAP TOPIC RECORDS UNORDERED|PARTITION|KEY THREADS sleep|random|burn MICROSECONDS

import com.sun.management.OperatingSystemMXBean;
import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Collections;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class Peer {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final long records;
    private final String kind;
    private final long us;
    private final AtomicLong begun = new AtomicLong();
    private final AtomicLong done = new AtomicLong();
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile long startNs;
    private volatile long startCpuNs;
    private volatile long endNs;
    private volatile long endCpuNs;

    private Peer(long records, String kind, long us) {
        this.records = records;
        this.kind = kind;
        this.us = us;
    }

    /** Thread.sleep() of this JDK knows milliseconds only; parking is as exact as nanosleep(). */
    private static void sleep(long us) {
        long until = System.nanoTime() + us * 1000;
        for (long left = us * 1000; left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static void burn(long us) {
        long until = THREADS.getCurrentThreadCpuTime() + us * 1000;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            Thread.onSpinWait();
        }
    }

    private void work(long offset) {
        if (begun.getAndIncrement() == 0) {
            startCpuNs = PROCESS.getProcessCpuTime();
            startNs = System.nanoTime();
        }
        if (kind.equals("burn")) {
            burn(us);
        } else if (kind.equals("random")) {
            sleep(((offset * 2654435761L & 0xffffffffL) >> 8) % (us + 1));
        } else {
            sleep(us);
        }
        if (done.incrementAndGet() == records) {
            endNs = System.nanoTime();
            endCpuNs = PROCESS.getProcessCpuTime();
            over.countDown();
        }
    }

    private static Map<String, Object> settings(String bootstrap) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, "bench-peer-" + UUID.randomUUID());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 5000);
        return settings;
    }

    public static void main(String[] args) throws InterruptedException {
        Peer peer = new Peer(Long.parseLong(args[2]), args[5], Long.parseLong(args[6]));
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings(args[0]), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        ParallelConsumerOptions<byte[], byte[]> options = ParallelConsumerOptions.<byte[], byte[]>builder()
                .consumer(consumer)
                .ordering(ProcessingOrder.valueOf(args[3]))
                .maxConcurrency(Integer.parseInt(args[4]))
                .ignoreReflectiveAccessExceptionsForAutoCommitDisabledCheck(true)
                .build();
        ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(Collections.singletonList(args[1]));
        processor.poll(context -> peer.work(context.offset()));
        if (!peer.over.await(180, TimeUnit.SECONDS)) {
            System.err.println("only " + peer.done.get() + " of " + peer.records + " records");
            System.exit(1);
        }
        System.out.printf(Locale.ROOT, "%.6f %.6f %d%n", (peer.endNs - peer.startNs) / 1e9,
                (peer.endCpuNs - peer.startCpuNs) / 1e9, peer.records);
        System.exit(0);
    }
}
