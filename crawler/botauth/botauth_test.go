package botauth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
)

const directoryOrigin = "https://bot.example.com"

func newKeyFromPrivate(t testing.TB) *botauth.Key {
	t.Helper()
	k, err := botauth.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newSigner(t testing.TB, k *botauth.Key, lifetime time.Duration) *botauth.Signer {
	t.Helper()
	s, err := botauth.NewSigner(k, directoryOrigin, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// publicKeyOf returns the public half of k as a JWK has it.
func publicKeyOf(t testing.TB, k *botauth.Key) string {
	t.Helper()
	var set botauth.KeySet
	if err := json.Unmarshal(botauth.MarshalDirectory(k), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%v: %+v", err, set)
	}
	return set.Keys[0].X
}

// TestSign: a signature is valid for its authority, directory and lifetime only, and each request
// gets a different one, whatever its header had before.
func TestSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyFromPrivate(t)
		s := newSigner(t, k, 0)
		r := httptest.NewRequest(http.MethodGet, "https://site.test:8443/a?b=c", nil)
		r.Header = http.Header{"Signature": {"a=:b:", "c=:d:"}, "Signature-Input": {"a=()"},
			"Signature-Agent": {`a="https://other.test"`}}
		s.Sign(r.Header, "site.test:8443")
		got, err := authtest.VerifyRequest(r, publicKeyOf(t, k), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got.DirectoryOrigin != directoryOrigin || got.KeyID != k.ID() ||
			got.Expires.Sub(got.Created) != 5*time.Minute {
			t.Errorf("%+v", got)
		}
		s.Sign(r.Header, "site.test:8443")
		if again, err := authtest.VerifyRequest(r, publicKeyOf(t, k), time.Now()); err != nil ||
			again.Nonce == got.Nonce {
			t.Errorf("the next one: %+v, %v", again, err)
		}
		for name, spoil := range map[string]func(r *http.Request){
			"another authority": func(r *http.Request) { r.Host = "other.test" },
			"another directory": func(r *http.Request) { r.Header.Set("Signature-Agent", `sig1="https://other.test"`) },
			"another time":      func(r *http.Request) { editHeader(r, "Signature-Input", ";expires=", ";expires=9") },
			"another key":       func(r *http.Request) { editHeader(r, "Signature-Input", `keyid="`, `keyid="A`) },
		} {
			bad := r.Clone(t.Context())
			spoil(bad)
			if _, err := authtest.VerifyRequest(bad, publicKeyOf(t, k), time.Now()); err == nil ||
				!strings.Contains(err.Error(), "is invalid") {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(6 * time.Minute)
		if _, err := authtest.VerifyRequest(r, publicKeyOf(t, k), time.Now()); err == nil ||
			!strings.Contains(err.Error(), "is valid from") {
			t.Errorf("after its time: %v", err)
		}
	})
}

// TestSignForm: the older form names the directory by a string, which the signature covers, and the
// form is a deliberate choice.
func TestSignForm(t *testing.T) {
	k := newKeyFromPrivate(t)
	for form, want := range map[botauth.SignatureAgentForm]string{botauth.DictionaryForm: `sig1="` + directoryOrigin +
		`"`, botauth.StringForm: `"` + directoryOrigin + `"`} {
		s, err := newSigner(t, k, 0).WithSignatureAgentForm(form)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "https://site.test/", nil)
		s.Sign(r.Header, "site.test")
		if got := r.Header.Get("Signature-Agent"); got != want {
			t.Errorf("%s: Signature-Agent is %s, want %s", form, got, want)
		}
		if got, err := authtest.VerifyRequest(r, publicKeyOf(t, k), time.Now()); err != nil ||
			got.DirectoryOrigin != directoryOrigin {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
		r.Header.Set("Signature-Agent", strings.Replace(want, "bot.", "evil.", 1))
		if _, err := authtest.VerifyRequest(r, publicKeyOf(t, k), time.Now()); err == nil {
			t.Errorf("%s: the signature does not cover the directory", form)
		}
	}
	if _, err := newSigner(t, k, 0).WithSignatureAgentForm("token"); err == nil {
		t.Error("a form that is not there is taken")
	}
}

func editHeader(r *http.Request, header, from, to string) {
	r.Header.Set(header, strings.Replace(r.Header.Get(header), from, to, 1))
}

// TestNewSignerRefuses: NewSigner refuses a directory that is not an https origin, and a lifetime
// out of range.
func TestNewSignerRefuses(t *testing.T) {
	k := newKeyFromPrivate(t)
	for _, directory := range []string{"", "bot.example.com", "http://bot.example.com", "https://bot.example.com/keys",
		"https://bot.example.com/?a",
		"https://bot.example.com//", "https://me:secret@bot.example.com", "ftp://bot.example.com", "https://"} {
		if _, err := botauth.NewSigner(k, directory, 0); err == nil ||
			!strings.Contains(err.Error(), "expected an origin on https") {
			t.Errorf("%q: %v", directory, err)
		}
	}
	for _, lifetime := range []time.Duration{-1, time.Second, 25 * time.Hour} {
		if _, err := botauth.NewSigner(k, directoryOrigin, lifetime); err == nil ||
			!strings.Contains(err.Error(), "expected 10s to 24h") {
			t.Errorf("%v: %v", lifetime, err)
		}
	}
	if got, err := botauth.ParseKeyDirectoryOrigin("HTTPS://Bücher.Example:443/"); err != nil ||
		got != "https://xn--bcher-kva.example" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestParseKey: a marshalled key is parsed back. Anything else is refused, and the error does not
// repeat it.
func TestParseKey(t *testing.T) {
	k := newKeyFromPrivate(t)
	text, err := k.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := botauth.ParseKey(text); err != nil || again.ID() != k.ID() {
		t.Errorf("%v, %v, want %s", again, err, k.ID())
	}
	for says, text := range map[string]string{
		"no private key in PEM found": "secret",
		"make one of your own": "-----BEGIN PRIVATE KEY-----\n" + // the example of RFC 9421
			"MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n",
	} {
		if _, err := botauth.ParseKey([]byte(text)); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestDirectory: a directory lists each key under its thumbprint, signed by that key for the
// directory's own authority, whatever the request says.
func TestDirectory(t *testing.T) {
	now, next := newKeyFromPrivate(t), newKeyFromPrivate(t)
	d, err := botauth.NewKeyDirectory(directoryOrigin, now, next)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://other.test"+botauth.DirectoryPath, nil))
	keys, err := authtest.VerifyKeyDirectory(w.Header(), w.Body.Bytes(), "bot.example.com", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range []*botauth.Key{now, next} {
		if want := (authtest.DirectoryKey{Kty: "OKP", Crv: "Ed25519", Kid: k.ID(), X: publicKeyOf(t, k),
			Use: "sig"}); keys[i] != want {
			t.Errorf("key %d: %+v, want %+v", i, keys[i], want)
		}
	}
	if got := w.Header().Get("Cache-Control"); got != "public, max-age=3600" {
		t.Errorf("Cache-Control: %s", got)
	}
	if _, err := authtest.VerifyKeyDirectory(w.Header(), w.Body.Bytes(), "other.test", time.Now()); err == nil {
		t.Error("the keys sign for whom the request named")
	}
	if strings.Contains(w.Body.String(), `"d"`) {
		t.Errorf("it holds what is private: %s", w.Body)
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, newKeyFromPrivate(b), 0)
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		s.Sign(h, "www.example.com")
	}
}
