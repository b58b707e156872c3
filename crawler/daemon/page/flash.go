package page

import (
	"encoding/base64"
	"net/http"
)

// flashCookie holds what the last form did until the next page says it.
const flashCookie = "decorum-said"

func setFlashMessage(w http.ResponseWriter, r *http.Request, message string) {
	const maxRunes = 1000 // a cookie has room for 4 KiB
	if text := []rune(message); len(text) > maxRunes {
		message = string(text[:maxRunes]) + "…"
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(message)), Path: "/",
		MaxAge: 60, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

// takeFlashMessage returns what is to be said, and makes sure that it is said once. A
// refresh in the background says nothing.
func takeFlashMessage(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(flashCookie)
	if err != nil || r.Header.Get(liveRefreshHeader) != "" {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	message, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(message)
}

// liveRefreshHeader is sent by the page's script when it looks for what has changed.
const liveRefreshHeader = "Decorum-Live"
