package ed25519pem

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"strings"
	"testing"
)

func encodePEM(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

// TestRoundTrip: a key that was written is read back unchanged.
func TestRoundTrip(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := MarshalPrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParsePrivate(text); err != nil || !again.Equal(private) {
		t.Errorf("the private key: %v", err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParsePublic(encodePEM(publicLabel, der)); err != nil || !again.Equal(public) {
		t.Errorf("the public key: %v", err)
	}
}

// TestOpenSSL: keys written by openssl are read, and MarshalPrivate writes the same text as
// openssl.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	text, err := exec.Command(openssl, "genpkey", "-algorithm", "ed25519").Output()
	if err != nil {
		t.Fatal(err)
	}
	private, err := ParsePrivate(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := MarshalPrivate(private); err != nil || !bytes.Equal(again, text) {
		t.Errorf("MarshalPrivate writes another text: %v", err)
	}
	half := exec.Command(openssl, "pkey", "-pubout")
	half.Stdin = bytes.NewReader(text)
	if text, err = half.Output(); err != nil {
		t.Fatal(err)
	}
	if public, err := ParsePublic(text); err != nil || !public.Equal(private.Public()) {
		t.Errorf("the public key: %v", err)
	}
}

// TestRefused: anything but such a key is refused with an error that says what to do and contains
// none of the text.
func TestRefused(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	readPrivate := func(text []byte) error { _, err := ParsePrivate(text); return err }
	readPublic := func(text []byte) error { _, err := ParsePublic(text); return err }
	for _, kind := range []struct {
		label, otherLabel, command, other string
		der                               []byte
		read                              func([]byte) error
	}{
		{privateLabel, publicLabel, "openssl genpkey -algorithm ed25519", "*ecdsa.PrivateKey", private, readPrivate},
		{publicLabel, privateLabel, "openssl pkey -pubout", "*ecdsa.PublicKey", public, readPublic},
	} {
		none := "no " + strings.ToLower(kind.label) + " in PEM found: expected -----BEGIN " + kind.label + "-----"
		for _, tt := range []struct {
			name, want string
			text       []byte
		}{
			{"nothing", none, nil},
			{"no PEM", none, []byte("secret")},
			{"the other half", none, encodePEM(kind.otherLabel, []byte("secret"))},
			{"a key with a password", none, encodePEM("ENCRYPTED PRIVATE KEY", []byte("secret"))},
			{"half of it", "is damaged", encodePEM(kind.label, []byte("secret"))},
			{"another kind", "is a " + kind.other + ": expected an Ed25519 key", encodePEM(kind.label, kind.der)},
		} {
			err := kind.read(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasSuffix(err.Error(), "as "+kind.command+" writes it") ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %s: %v, want %q", kind.label, tt.name, err, tt.want)
			}
		}
	}
}
