(function () {
  "use strict";
  var body = document.body, waiting = body.dataset.stamp === "", counts = document.getElementById("counts");
  var away = document.getElementById("away");
  var newer = document.getElementById("newer"), quick = body.dataset.answered === "";
  function show(now) {
    if (!waiting && !now.exists) { lost(); return; }
    if (waiting ? now.exists : quick && now.answered) { location.reload(); return; }
    if (counts && now.planned) { counts.textContent = now.terminal + " of " + now.planned + " trials over"; }
    if (newer && !quick && now.stamp && now.stamp !== body.dataset.stamp) { newer.hidden = false; }
    body.dataset.live = "yes";
    if (away) { away.hidden = true; }
  }
  function lost() {
    body.dataset.live = "no";
    if (away) { away.hidden = false; away.textContent = "The store or the viewer does not answer. This page asks again."; }
  }
  function ask() {
    fetch("/live.json", { cache: "no-store" })
      .then(function (answer) { return answer.ok ? answer.json() : Promise.reject(); })
      .then(show)
      .catch(lost)
      .then(function () { setTimeout(ask, quick ? 700 : 3000); });
  }
  setTimeout(ask, 700);
})();
