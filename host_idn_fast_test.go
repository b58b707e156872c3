package decorum_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
)

// checkHostname fails the test if the canonical form of the fast path differs from that of the idna
// package. It reports whether the fast path has one.
func checkHostname(t *testing.T, name string) bool {
	t.Helper()
	fast, ok := decorum.HostnameFast(name)
	if !ok {
		return false
	}
	if slow, err := decorum.HostnameByIDNA(name); err != nil || fast != slow {
		t.Fatalf("%q: the fast path says %q, the idna package %q, %v", name, fast, slow, err)
	}
	return true
}

// stableRunes returns every rune outside ASCII that the fast path accepts. It checks that the idna
// package keeps each of them unchanged.
func stableRunes(t *testing.T) []rune {
	t.Helper()
	var runes []rune
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		if checkHostname(t, "a"+string(r)+"b.example") {
			runes = append(runes, r)
		}
	}
	return runes
}

// TestHostnameFast compares the fast path of international names with the idna package: for every
// rune that it accepts and for mixtures of them, both as text and in Punycode.
func TestHostnameFast(t *testing.T) {
	runes := stableRunes(t)
	if len(runes) < 30_000 {
		t.Errorf("the fast path accepts only %d runes", len(runes))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var label strings.Builder
		for range 1 + rng.IntN(12) { // few enough for a DNS label in Punycode
			if rng.IntN(3) == 0 {
				label.WriteByte("abcXYZ019-_"[rng.IntN(11)])
				continue
			}
			label.WriteRune(runes[rng.IntN(len(runes))])
		}
		name := "www." + label.String() + ".example"
		if !checkHostname(t, name) {
			if utf8.RuneCountInString(label.String()) == len(label.String()) {
				continue // a name of ASCII alone may be an address, which the fast path rejects
			}
			t.Fatalf("%q is left to the idna package", name)
		}
		ascii, _ := decorum.HostnameFast(name)
		if again, ok := decorum.HostnameFast(ascii); !ok || again != ascii {
			t.Fatalf("%q is %q in Punycode, and that is %q", name, ascii, again)
		}
	}
}

// TestHostnameFastOnNoise decodes random strings, mostly invalid Punycode.
func TestHostnameFastOnNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50_000 {
		label := []byte("xn--")
		for range 1 + rng.IntN(80) {
			label = append(label, "9999999zya-b"[rng.IntN(12)])
		}
		checkHostname(t, string(label)+".example")
		checkInvariants(t, decorum.URL{}, "https://"+string(label)+".example/")
	}
}

// TestHostnameFastLeavesToIDNA lists names that the fast path must reject, so that the idna package
// handles them.
func TestHostnameFastLeavesToIDNA(t *testing.T) {
	for _, name := range []string{
		"", "é.example.", "é.1", "é.0x1", // empty, a final dot, possible addresses
		"É.example", "e\u0301.example", "é。example", "ﬁ.example", "exam\u00adple.é", // UTS 46 maps them
		"א.example", "é.א", "\u0661.example", // from right to left
		"a\u200db.example", "l·l.example", "☕.example", "\xff.example",
		"xn--.example", "xn--a.example", "xn--é.example", "xn--abc-.example", "XN--a-É.example",
		"xn--xn---epa.example", "xn--99999999.example", "xn--" + strings.Repeat("9", 59) + ".example",
		strings.Repeat("é", 64) + ".example", strings.Repeat("é.", 60) + "example", "xn---9ca.example",
	} {
		if ascii, ok := decorum.HostnameFast(name); ok {
			t.Errorf("the fast path accepts %q as %q", name, ascii)
		}
	}
}

func FuzzHostnameFast(f *testing.F) {
	for _, name := range []string{
		"www.exämple.com", "xn--exmple-cua.com", "XN--EXMPLE-CUA.com", "пример.испытание", "例え.テスト", "faß.example",
		"xn--80akhbyknj4f.é", "xn--r8jz45g.xn--zckzah", "ab--é.example", "r3---sn.é", "한국.kr",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { checkHostname(t, name) })
}
