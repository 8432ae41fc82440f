// Search from a disk: browsers refuse to start a worker of a page that is a file. Here a hidden
// frame runs the worker's script instead. Over HTTP this file does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.onload = () => this.begin(frame, new URL(url, location.href).href);
      document.body.appendChild(frame); // some browsers load an empty frame at once, others later
    }

    begin(frame, url) {
      frame.onload = null;
      this.inside = frame.contentWindow;
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.inside.postMessage = answer;
      this.inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
      this.load(url).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = loaded;
        script.onerror = failed;
        this.inside.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }

    terminate() {}
  };
}
