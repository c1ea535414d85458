// Curator's InterProcessMutex under the bench: takes and gives back a lock as it is told, and prints when; figures are made elsewhere.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

public class CuratorBench {
    /** Arguments: servers. Orders: "pair PATH MS" and "loop PATH WAITERS HOLD_MS MS". */
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 30000, 5000, new RetryNTimes(3, 100));
        client.start();
        client.blockUntilConnected();
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ");
            StringBuilder said = new StringBuilder();
            if (words[0].equals("pair")) {
                for (long nanos : pairs(new InterProcessMutex(client, words[1]), Long.parseLong(words[2]))) {
                    said.append(nanos / 1000.0).append(' ');
                }
            } else {
                InterProcessMutex mutex = new InterProcessMutex(client, words[1]);
                int waiters = Integer.parseInt(words[2]);
                for (long[] turn : loop(mutex, waiters, Long.parseLong(words[3]), Long.parseLong(words[4]))) {
                    said.append(turn[0] / 1000).append(',').append(turn[1] / 1000).append(' ');
                }
            }
            System.out.println(said.toString().trim());
        }
        System.exit(0);
    }

    private static List<Long> pairs(InterProcessMutex mutex, long ms) throws Exception {
        List<Long> samples = new ArrayList<>();
        long until = System.nanoTime() + ms * 1_000_000;
        for (long before = System.nanoTime(); before < until; ) {
            mutex.acquire();
            mutex.release();
            long now = System.nanoTime();
            samples.add(now - before);
            before = now;
        }
        return samples;
    }

    /** When each turn was entered and left, by the machine's monotonic clock. */
    private static Iterable<long[]> loop(InterProcessMutex mutex, int waiters, long holdMs, long ms) throws Exception {
        ConcurrentLinkedQueue<long[]> turns = new ConcurrentLinkedQueue<>();
        long until = System.nanoTime() + ms * 1_000_000;
        List<Thread> threads = new ArrayList<>();
        for (int waiter = 0; waiter < waiters; waiter++) {
            Thread thread = new Thread(() -> {
                try {
                    while (System.nanoTime() < until) {
                        mutex.acquire();
                        long entered = System.nanoTime();
                        Thread.sleep(holdMs);
                        turns.add(new long[] {entered, System.nanoTime()});
                        mutex.release();
                    }
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return turns;
    }
}
