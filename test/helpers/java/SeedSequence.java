// Writes a snapshot of ZooKeeper in which the children of one node have been counted up to a given number.
import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

public class SeedSequence {
    /** Arguments: the folder for data, the path of the node, and the count. */
    public static void main(String[] args) throws Exception {
        DataTree tree = new DataTree();
        String path = "";
        long zxid = 1;
        for (String part : args[1].substring(1).split("/")) {
            path += "/" + part;
            tree.createNode(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, 0, -1, zxid++, 1);
        }
        String child = path + "/counted";
        tree.createNode(child, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, 0, Integer.parseInt(args[2]), zxid++, 1);
        tree.deleteNode(child, zxid);
        tree.lastProcessedZxid = zxid;
        File folder = new File(args[0]);
        new FileTxnSnapLog(folder, folder).save(tree, new ConcurrentHashMap<Long, Integer>(), true);
    }
}
