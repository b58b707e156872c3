package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// collect reads at most so many seeds.
func collect(p Project, most int) (urls []string, err error) {
	for u, err := range p.seeds(nil) {
		if err != nil {
			return urls, err
		}
		if urls = append(urls, u.String()); len(urls) == most {
			break
		}
	}
	return urls, nil
}

func TestSeeds(t *testing.T) {
	list := write(t, "seeds.txt", "# a comment\n\n https://a.example/1 \nHTTPS://A.example/2\n")
	p := Project{Seeds: []string{"https://b.example/"}, SeedFiles: []string{list}}
	all := []string{"https://b.example/", "https://a.example/1", "https://a.example/2"}
	for most := 1; most <= len(all)+1; most++ { // whoever has enough may stop anywhere
		got, err := collect(p, most)
		if want := all[:min(most, len(all))]; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the first %d: %q, %v; want %q", most, got, err, want)
		}
	}
	roots, err := p.roots(nil)
	if err != nil || fmt.Sprint(roots) != "[https://b.example/ https://a.example/1]" {
		t.Errorf("roots %v, %v; want one of each origin", roots, err)
	}
}

func TestSeedErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no URL", "https://a.example/\n\nexample.com\n", "seeds.txt:3: the line is not a URL the crawl can visit"},
		{"too long a line", strings.Repeat("x", 1<<17), "seeds.txt:1: the line is longer than 65536 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := collect(Project{SeedFiles: []string{write(t, "seeds.txt", tt.text)}}, 10)
			var e *exit
			if !errors.As(err, &e) || e.code != ExitUsage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one of usage that says %q", err, tt.want)
			}
		})
	}
	if _, err := collect(Project{SeedFiles: []string{filepath.Join(t.TempDir(), "none")}}, 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that there is no such file", err)
	}
}
