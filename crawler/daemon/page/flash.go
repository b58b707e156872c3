package page

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// flashCookie holds what the last form did until the next page says it.
const flashCookie = "decorum-said"

// A flash is what a form did, or why it did not.
type flash struct {
	Text string
	Bad  bool
}

func setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	const longest = 1000 // a cookie has room for 4 KiB
	text := []rune(f.Text)
	if len(text) > longest {
		f.Text = string(text[:longest]) + "…"
	}
	plain, err := json.Marshal(f)
	if err != nil {
		return // of a string and a bool: it cannot fail
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(plain), Path: "/",
		MaxAge: 60, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

// takeFlash returns what is to be said, and makes sure that it is said once. A
// refresh in the background says nothing.
func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	c, err := r.Cookie(flashCookie)
	if err != nil || r.Header.Get(liveHeader) != "" {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	plain, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil
	}
	var f flash
	if json.Unmarshal(plain, &f) != nil {
		return nil
	}
	return &f
}

// liveHeader is sent by the page's script when it looks for what has changed.
const liveHeader = "Decorum-Live"
