(function () {
  "use strict";
  var root = document.documentElement, theme = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches; }
  function label() { theme.textContent = isDark() ? "Light" : "Dark"; }
  function keep(name) { try { localStorage.setItem("trialfleet-theme", name); } catch (refused) { return; } }
  try { root.dataset.theme = localStorage.getItem("trialfleet-theme") || ""; } catch (refused) { root.dataset.theme = ""; }
  theme.hidden = false;
  label();
  dark.addEventListener("change", label);
  theme.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep(root.dataset.theme);
    label();
  });

  var command = document.getElementById("command"), said = document.getElementById("said");
  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var fold = target && target.closest("details");
    if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
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
