"use strict";
// The library is large: only pages with a diagram load it. Diagrams follow the colours of the page.
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector(".diagram")) return;
  const library = document.createElement("script");
  const here = document.querySelector('script[src$="diagrams.js"]').src;
  library.src = here.replace("diagrams.js", "mermaid.min.js");
  library.onload = () => {
    const dark = document.body.dataset.mdColorScheme === "slate";
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
    for (const one of document.querySelectorAll(".diagram")) {
      one.textContent = one.textContent.replace("flowchart LR", "flowchart TB"); // a page is narrower than a screen
    }
    mermaid.run({ querySelector: ".diagram" });
  };
  document.head.append(library);
});
