package io.labrys.mends;

import java.util.List;

/** The mends of DLedger 0.4.0, by the findings in clusters/systems/dledger/findings/dledger-0.4.0.md. */
public final class DLedgerMends implements Mends {
    private static final List<Mend> ALL = List.of(
        // A dispatcher compares from the end of the log at each new leadership, and not at the start of the process. Also for finding 5.
        new Mend("dledger-1", Names.DISPATCHER, LogMends::compareFromEnd),

        // A follower takes a snapshot after another one: its slot for a request is empty again.
        new Mend("dledger-2", Names.HANDLER, LogMends::emptySlot),

        // A follower that has a snapshot already answers success, so that the leader goes on after it.
        new Mend("dledger-2", Names.SNAPSHOTS, LogMends::hasSnapshot),

        // A dispatcher that sends entries again forgets the requests without an answer.
        new Mend("dledger-4", Names.DISPATCHER, LogMends::forgetLostRequests),

        // A dispatcher looks for overdue requests behind what the follower has, and not behind what it has of this term.
        new Mend("dledger-6", Names.DISPATCHER, LogMends::repeatOldEntries),

        // A follower cuts its file at the position in its own index, and not at that of the leader.
        new Mend("dledger-7", Names.STORE, LogMends::cutAtOwnPosition, "Stores"),

        // A leader steps down on any answer with a higher term, also on a late one.
        new Mend("dledger-8", Names.ELECTOR, LogMends::stepDown),

        // After a snapshot, a leader compares the logs before it sends entries, so that the follower drops what contradicts its own.
        new Mend("dledger-9", Names.DISPATCHER, LogMends::compareAfterSnapshot),

        // A store whose entries after a snapshot are all dropped ends with the snapshot.
        new Mend("dledger-10", Names.STORE, LogMends::endWithSnapshot),

        // A store that starts again learns the term of the last entry in its snapshot.
        new Mend("dledger-11", Names.STORE, LogMends::knowTermOfSnapshot),

        // A node votes by the end of its log also after a cut and after a snapshot.
        new Mend("dledger-12", Names.STORE, LogMends::voteByEnd),

        // A store that is cut releases what it read of the index, so that a later reset can delete the file at once.
        new Mend("dledger-13", Names.STORE, LogMends::releaseIndex),

        // A comparison goes back entry by entry, so that a follower drops only what contradicts the leader.
        new Mend("dledger-14", Names.HANDLER, LogMends::compareEachEntry),

        // A follower refuses to truncate for a leader of an old term.
        new Mend("dledger-15", Names.HANDLER, LogMends::truncateInTerm, "Requests"),

        // A process does not lead in the term in which an earlier process of its node can have led.
        new Mend("dledger-16", Names.ELECTOR, LogMends::leadInNewTerm, "Elections"),

        // A file is replaced by a rename, so that a node that is killed meanwhile keeps its term and vote.
        new Mend("dledger-17", Names.FILES, LogMends::replaceAtOnce),

        // A file is on the disk before a node goes on, so that a node without power keeps its term and vote.
        new Mend("dledger-18", Names.FILES, LogMends::syncFiles, "Syncs"),

        // An entry gets space on the disk before it is written, so that a full disk refuses it.
        new Mend("dledger-19", Names.MAPPED_FILE, FullDiskMends::allocatePages, "Pages"),

        // An entry for which a full disk has space, and none for its index, does not stay in the log.
        new Mend("dledger-19", Names.STORE, FullDiskMends::dropWithoutIndex, "Stores"),

        // A node takes no term and gives no vote that it cannot store.
        new Mend("dledger-20", Names.STATE, FullDiskMends::storeOrTakeBack),

        // A node answers a request for its vote by the vote that it has stored.
        new Mend("dledger-20", Names.ELECTOR, FullDiskMends::answerByVote, "Elections"),

        // A candidate that cannot store its term waits before it tries again.
        new Mend("dledger-20", Names.MAINTAINER, FullDiskMends::waitAfterFailure, "Elections"));

    @Override
    public List<Mend> all() {
        return ALL;
    }
}
