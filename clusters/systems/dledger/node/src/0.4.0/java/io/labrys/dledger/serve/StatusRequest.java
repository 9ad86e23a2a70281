package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** Requests a node's view of itself and the group. A node answers it in any role. */
public class StatusRequest extends UserDefineRequest {
    /** The type's number in a request's header. */
    public static final int TYPE = 2;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }
}
