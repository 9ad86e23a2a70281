package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;

/** The fields of all answers: the library's own (code, group, leaderId, term, ...), and a message. */
public class NodeResponse extends UserDefineResponse {
    private String message;

    /** Returns why the code is not 200, as a text; null if the code suffices. */
    public String getMessage() {
        return message;
    }

    /** Sets {@link #getMessage}. */
    public void setMessage(String message) {
        this.message = message;
    }
}
