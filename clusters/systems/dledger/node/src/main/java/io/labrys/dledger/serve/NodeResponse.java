package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;

/** What all answers have: the library's own fields (code, group, leaderId, term, ...), and a sentence where one is needed. */
public class NodeResponse extends UserDefineResponse {
    private String message;

    /** Returns why the code is not 200, in words; null if the code says it all. */
    public String getMessage() {
        return message;
    }

    /** Sets {@link #getMessage}. */
    public void setMessage(String message) {
        this.message = message;
    }
}
