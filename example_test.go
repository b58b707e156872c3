package decorum_test

import (
	"errors"
	"fmt"

	"github.com/decorum-crawler/decorum"
)

// All spellings of a URL have one canonical form.
func ExampleParseURL() {
	for _, s := range []string{"HTTP://Example.com:80/a/../b?q=%7e#top", "https://exämple.com",
		"mailto:you@example.com"} {
		u, err := decorum.ParseURL(s)
		if errors.Is(err, decorum.Invalid) {
			fmt.Println("no URL to visit:", s)
			continue
		}
		fmt.Println(u, "of", u.Origin())
	}
	// Output:
	// http://example.com/b?q=~ of http://example.com
	// https://xn--exmple-cua.com/ of https://xn--exmple-cua.com
	// no URL to visit: mailto:you@example.com
}

// Links resolve as in a browser.
func ExampleURL_Resolve() {
	page, err := decorum.ParseURL("https://example.com/shop/list?page=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, link := range []string{"item/7", "?page=3", "//cdn.example.com/x", "/about#team"} {
		u, err := page.Resolve(link)
		fmt.Println(u, err)
	}
	// Output:
	// https://example.com/shop/item/7 <nil>
	// https://example.com/shop/list?page=3 <nil>
	// https://cdn.example.com/x <nil>
	// https://example.com/about <nil>
}
