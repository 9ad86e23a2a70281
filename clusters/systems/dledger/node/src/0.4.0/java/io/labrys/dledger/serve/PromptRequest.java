package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** Requests that this node takes over the leadership promptly from now on. A node answers it in any role. */
public class PromptRequest extends UserDefineRequest {
    /** The type's number in a request's header. */
    public static final int TYPE = 4;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }
}
