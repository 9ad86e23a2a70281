package io.labrys.mends;

/** The internal names of classes of DLedger. */
final class Names {
    static final String LIBRARY = "io/openmessaging/storage/dledger/";
    static final String PUSHER = LIBRARY + "DLedgerEntryPusher";
    static final String DISPATCHER = PUSHER + "$EntryDispatcher";
    static final String HANDLER = PUSHER + "$EntryHandler";
    static final String SNAPSHOTS = LIBRARY + "snapshot/SnapshotManager";
    static final String STORE = LIBRARY + "store/file/DLedgerMmapFileStore";
    static final String MAPPED_FILE = LIBRARY + "store/file/DefaultMmapFile";
    static final String RESULT = LIBRARY + "store/file/SelectMmapBufferResult";
    static final String ELECTOR = LIBRARY + "DLedgerLeaderElector";
    static final String MAINTAINER = ELECTOR + "$StateMaintainer";
    static final String REQUEST = LIBRARY + "protocol/PushEntryRequest";
    static final String STATE = LIBRARY + "MemberState";
    static final String SERVICE = LIBRARY + "DLedgerRpcNettyService";
    static final String FILES = LIBRARY + "utils/IOUtils";
    static final String MAP = "java/util/concurrent/ConcurrentMap";

    private Names() {}
}
