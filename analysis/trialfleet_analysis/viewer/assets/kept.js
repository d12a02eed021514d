(function () {
  "use strict";
  var kept = document.getElementById("kept"), rows = document.querySelectorAll("tbody tr");
  function shows(row, name, wanted) { return (" " + row.dataset[name] + " ").indexOf(" " + wanted + " ") >= 0; }
  function filter() {
    var wanted = new URLSearchParams(location.hash.slice(1)), names = ["task", "condition", "loss"], count = 0;
    names = names.filter(function (name) { return wanted.get(name); });
    rows.forEach(function (row) {
      row.hidden = !names.every(function (name) { return shows(row, name, wanted.get(name)); });
      count += row.hidden ? 0 : 1;
    });
    kept.hidden = !names.length;
    kept.textContent = count + " of " + rows.length + " trials: " +
      names.map(function (name) { return name + " " + wanted.get(name); }).join(", ");
  }
  window.addEventListener("hashchange", filter);
  filter();
})();
