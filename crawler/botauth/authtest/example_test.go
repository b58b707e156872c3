package authtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
)

// A test's server verifies the signature of each request, and a request for another host is refused.
func ExampleVerifyRequest() {
	key, err := botauth.GenerateKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := botauth.NewSigner(key, "https://bot.example.org", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	var published botauth.KeySet
	if err := json.Unmarshal(botauth.MarshalDirectory(key), &published); err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest(http.MethodGet, "https://shop.example/", nil)
	signer.Sign(request.Header, "shop.example")

	signature, err := authtest.VerifyRequest(request, published.Keys[0].X, time.Now())
	fmt.Println(signature.DirectoryOrigin, signature.Expires.Sub(signature.Created), err)
	request.Host = "other.example"
	_, err = authtest.VerifyRequest(request, published.Keys[0].X, time.Now())
	fmt.Println(err)
	// Output:
	// https://bot.example.org 1m0s <nil>
	// the signature is invalid
}
