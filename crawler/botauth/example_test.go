package botauth_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
)

// A request is signed with a key whose public half is in the directory that the signature names,
// where a site finds it.
func Example() {
	key, err := botauth.GenerateKey() // or ParseKey, for a file made by "decorum identity key"
	if err != nil {
		log.Fatal(err)
	}
	signer, err := botauth.NewSigner(key, "https://bot.example.org", 0)
	if err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "https://shop.example/", nil)
	signer.Sign(request.Header, "shop.example")

	directory, err := botauth.NewKeyDirectory("https://bot.example.org", key)
	if err != nil {
		log.Fatal(err)
	}
	served := httptest.NewRecorder()
	directory.ServeHTTP(served, httptest.NewRequest(http.MethodGet, "https://bot.example.org"+
		botauth.DirectoryPath, nil))

	// The site verifies the directory and the request; authtest does it here.
	keys, err := authtest.VerifyKeyDirectory(served.Header(), served.Body.Bytes(), "bot.example.org", time.Now())
	if err != nil {
		log.Fatal(err)
	}
	signature, err := authtest.VerifyRequest(request, keys[0].X, time.Now())
	fmt.Println(signature.DirectoryOrigin, signature.KeyID == key.ID(), err)
	// Output: https://bot.example.org true <nil>
}
