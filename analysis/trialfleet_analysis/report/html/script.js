(function () {
  "use strict";
  var command = document.getElementById("command"), said = document.getElementById("said");
  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1)), opened = false;
    if (!target) { return; }
    var fold = target.querySelector(":scope > details") || target.closest("details");
    for (; fold; fold = fold.parentElement.closest("details")) { opened = opened || !fold.open; fold.open = true; }
    if (opened) { target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", unfold);
  unfold();
  document.querySelectorAll(".ids").forEach(function (group) {
    group.closest("details").addEventListener("toggle", function () {
      if (group.dataset.made) { return; }
      group.dataset.made = "yes";
      var names = group.textContent.trim().split(" ");
      group.textContent = "";
      names.forEach(function (name) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = name;
        group.append(button, " ");
      });
    });
  });
  document.addEventListener("click", function (event) {
    var button = event.target.closest(".ids button");
    if (!button) { return; }
    command.textContent = command.dataset.start + button.textContent;
    said.hidden = false;
    var kept = navigator.clipboard ? navigator.clipboard.writeText(command.textContent) : Promise.reject();
    kept.then(function () { said.dataset.copied = "yes"; }, function () { said.dataset.copied = ""; });
  });
})();
