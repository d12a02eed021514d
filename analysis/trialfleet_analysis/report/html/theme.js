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
})();
