package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** Asks a node for all of its registers and the log position that they belong to. */
public final class DumpRequest extends UserDefineRequest {
    public static final int TYPE = 3;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }
}
