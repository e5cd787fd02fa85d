// The overview as it changes. The server writes the HTML, with everything in it escaped.
"use strict";

const overview = document.getElementById("overview");
const connection = document.getElementById("connection");
const news = new EventSource("/live");

news.addEventListener("overview", (event) => {
  overview.innerHTML = JSON.parse(event.data).html;
  connection.textContent = "live";
});
news.onerror = () => {
  connection.textContent = "the server cannot be reached; trying again…";
};
news.onopen = () => {
  connection.textContent = "live";
};
window.addEventListener("pagehide", () => news.close());
