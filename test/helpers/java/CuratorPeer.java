// A Java service that uses Curator's locks, told what to do line by line; what comes of it is judged by the tests that start it.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryNTimes;

public class CuratorPeer {
    /** Arguments: servers, session length in ms, path of the lock, and mutex, read or write. */
    public static void main(String[] args) throws Exception {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 5000, new RetryNTimes(10, 50));
        client.start();
        client.blockUntilConnected();
        InterProcessLock lock = lockOf(client, args[2], args[3]);
        say("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ");
            switch (words[0]) {
                case "acquire":
                    lock.acquire();
                    say("granted");
                    break;
                case "try":
                    say(lock.acquire(0, TimeUnit.MILLISECONDS) ? "granted" : "busy");
                    break;
                case "release":
                    lock.release();
                    say("released");
                    break;
                case "count":
                    count(lock, Integer.parseInt(words[1]), Path.of(words[2]));
                    say("counted");
                    break;
                default:
                    throw new IllegalArgumentException(order);
            }
        }
        client.close();
    }

    private static InterProcessLock lockOf(CuratorFramework client, String path, String kind) {
        if (kind.equals("mutex")) {
            return new InterProcessMutex(client, path);
        }
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        return kind.equals("read") ? both.readLock() : both.writeLock();
    }

    /** Reads a number, dawdles, and writes it back one higher, under the lock. */
    private static void count(InterProcessLock lock, int times, Path file) throws Exception {
        for (int turn = 0; turn < times; turn++) {
            lock.acquire();
            try {
                int read = Integer.parseInt(Files.readString(file).trim());
                Thread.sleep(1);
                Files.writeString(file, Integer.toString(read + 1));
            } finally {
                lock.release();
            }
        }
    }

    private static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }
}
