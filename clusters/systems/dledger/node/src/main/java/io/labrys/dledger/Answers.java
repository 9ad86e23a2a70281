package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;

/** What every answer of this node carries, and the tests that the library leaves to its users. */
final class Answers {
    private Answers() {}

    /** Returns why this node must not serve the request at all, or SUCCESS. */
    static DLedgerResponseCode addressed(DLedgerServer server, UserDefineRequest request) {
        MemberState state = server.getMemberState();
        if (!state.getGroup().equals(request.getGroup())) {
            return DLedgerResponseCode.UNKNOWN_GROUP;
        }
        if (!state.getSelfId().equals(request.getRemoteId())) {
            return DLedgerResponseCode.UNKNOWN_MEMBER;
        }
        return DLedgerResponseCode.SUCCESS;
    }

    /** Fills in the code, and what this node believes of term and leader. */
    static <T extends UserDefineResponse> T fill(DLedgerServer server, T response, DLedgerResponseCode code) {
        MemberState state = server.getMemberState();
        response.setCode(code.getCode());
        response.setGroup(state.getGroup());
        response.setLocalId(state.getSelfId());
        response.setLeaderId(state.getLeaderId());
        response.setTerm(state.currTerm());
        return response;
    }
}
