(function () {
  "use strict";
  var away = document.getElementById("away");
  function say(words) { if (away) { away.hidden = !words; away.textContent = words; } }
  function busy(part) {
    var chosen = getSelection();
    return document.hidden || part.contains(document.activeElement) || (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode));
  }
  function scrolled(from, to) {
    from.forEach(function (old, n) {
      var atEnd = old.top + old.shown >= old.whole - 4;
      if (to[n]) { to[n].scrollTop = atEnd ? to[n].scrollHeight : old.top; }
    });
  }
  function put(part, text) {
    var fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[id]");
    if (!fresh || fresh.outerHTML === part.outerHTML) { return part; }
    var old = Array.prototype.map.call(part.querySelectorAll("pre"), function (one) {
      return { top: one.scrollTop, shown: one.clientHeight, whole: one.scrollHeight };
    });
    part.replaceWith(document.adoptNode(fresh));
    scrolled(old, fresh.querySelectorAll("pre"));
    return fresh;
  }
  function ask(part) {
    var address = part.dataset.refresh;
    if (!address) { return; }
    if (busy(part)) { setTimeout(ask, 1000, part); return; }
    fetch(address, { cache: "no-store" })
      .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(); })
      .then(function (text) { say(""); return put(part, text); })
      .catch(function () { say("The store or the viewer does not answer. This page asks again."); return part; })
      .then(function (next) { setTimeout(ask, Number(next.dataset.pause) || 3000, next); });
  }
  document.querySelectorAll("[data-refresh] pre").forEach(function (one) { one.scrollTop = one.scrollHeight; });
  document.querySelectorAll("[data-refresh]").forEach(ask);
})();
