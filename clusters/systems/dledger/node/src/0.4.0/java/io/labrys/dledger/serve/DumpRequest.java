package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** Requests all registers of a node. A node answers it in any role. */
public class DumpRequest extends UserDefineRequest {
    /** The type's number in a request's header. */
    public static final int TYPE = 3;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }
}
