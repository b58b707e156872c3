package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestLineKeepsWhoComesLate: a URL that was turned away because of a permit is not
// forgotten by who was given it, however late that is.
func TestLineKeepsWhoComesLate(t *testing.T) {
	u, err := decorum.ParseURL("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	var w originsToWake
	w.add(u.Origin())
	asked := w.last()
	w.leave(u.Origin(), asked)
	if len(w.hosts()) != 0 {
		t.Error("who was permitted still waits")
	}
	w.add(u.Origin())
	w.leave(u.Origin(), asked)
	if len(w.take("a.test")) != 1 || len(w.hosts()) != 0 {
		t.Error("who was turned away since then was forgotten, or was called and is not")
	}
}
