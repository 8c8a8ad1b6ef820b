// SPDX-License-Identifier: Apache-2.0
// A browser starts no worker for a page that it reads from a folder (file://), and the site's search is one.
// There it runs in a hidden frame instead. zensical.toml names this file; else the theme would fetch one like it.
if (location.protocol === "file:") {
  window.Worker = class {
    #frame = document.createElement("iframe");
    #loaded;

    constructor(url) {
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      inside.postMessage = (data) => this.onmessage?.(new MessageEvent("message", { data: structuredClone(data) }));
      this.#loaded = new Promise((loaded) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, document.baseURI);
        script.onload = loaded;
        script.onerror = () => this.onerror?.(new ErrorEvent("error", { message: `${url} cannot be read` }));
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.#loaded.then(() => this.#frame.contentWindow?.onmessage?.(new MessageEvent("message", { data: structuredClone(data) })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
