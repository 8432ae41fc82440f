// The page's start.

import { render } from "preact";

import { App } from "./app";
import { startFocus } from "./state/focus";
import { startRouter } from "./state/router";
import { startTheme } from "./state/theme";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/views.css";
import "./styles/access.css";
import "./styles/blobs.css";
import "./styles/compare.css";
import "./styles/coordination.css";
import "./styles/files.css";
import "./styles/queues.css";
import "./styles/tables.css";

// A SAS stands in the addresses of requests, and the browser would list these after the sign-out.
performance.setResourceTimingBufferSize(0);
startTheme();
startRouter();
startFocus();
const root = document.getElementById("console");
if (root) render(<App />, root);
