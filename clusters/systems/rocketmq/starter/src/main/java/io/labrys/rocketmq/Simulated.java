package io.labrys.rocketmq;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import java.util.Locale;
import java.util.function.Function;
import org.apache.rocketmq.controller.ControllerManager;
import org.apache.rocketmq.controller.ControllerStartup;
import org.apache.rocketmq.controller.impl.DLedgerController;

/**
 * Starts a controller on DLedger in the simulator of Java programs, which runs all controllers in one JVM. The arguments are those of
 * {@link ControllerStartup}, which does all the rest.
 */
public final class Simulated {
    private Simulated() {}

    /** Starts the controller. Returns what tells the state of its group's member as JSON: role, term, last, lastTerm, committed. */
    public static Function<String, String> begin(String[] arguments) throws ReflectiveOperationException {
        ControllerManager manager = ControllerStartup.main0(arguments);
        DLedgerServer server = server((DLedgerController) manager.getController());
        return key -> state(server);
    }

    /** Returns the library's server. The controller shows the state of its member, but not the committed index. */
    private static DLedgerServer server(DLedgerController controller) throws ReflectiveOperationException {
        var field = DLedgerController.class.getDeclaredField("dLedgerServer");
        field.setAccessible(true);
        return (DLedgerServer) field.get(controller);
    }

    private static String state(DLedgerServer server) {
        MemberState member = server.getMemberState();
        return "{\"role\":\"" + member.getRole().name().toLowerCase(Locale.ROOT) + "\",\"term\":" + member.currTerm() + ",\"last\":"
            + member.getLedgerEndIndex() + ",\"lastTerm\":" + member.getLedgerEndTerm() + ",\"committed\":"
            + server.getDLedgerStore().getCommittedIndex() + "}";
    }
}
