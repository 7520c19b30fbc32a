"use strict";
// Logs in with the ticket of the address's fragment, or with what a person pastes. Neither is
// ever in a request's address.
(() => {
  const said = document.getElementById("said");
  const field = document.getElementById("credential");
  const wanted = new URL(new URLSearchParams(location.search).get("next") || "/", location.origin);
  const next = wanted.origin === location.origin ? wanted.href : "/";

  async function login(credential) {
    said.textContent = "";
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ credential }),
    });
    if (answer.ok) {
      location.replace(next);
    } else {
      said.textContent = await answer.text();
    }
  }

  const failed = (e) => { said.textContent = "The web terminal does not answer: " + e.message; };

  document.getElementById("login").addEventListener("submit", (e) => {
    e.preventDefault();
    const credential = field.value;
    field.value = "";
    login(credential).catch(failed);
  });

  const ticket = location.hash.slice(1);
  if (ticket) {
    history.replaceState(null, "", location.pathname + location.search);
    login(ticket).catch(failed);
  }
})();
