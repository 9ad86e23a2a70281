package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** Asks a node for its own view of itself. */
public final class StatusRequest extends UserDefineRequest {
    public static final int TYPE = 2;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }
}
