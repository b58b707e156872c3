package page

import (
	"iter"
	"net/http"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A urlsForm is the form that URLs are added by.
type urlsForm struct {
	Text    string
	Intake  *api.Intake // what became of them
	Problem string      // why not all of them were taken
}

func (s *site) urls(r *http.Request) (view, error) {
	v, l, err := s.lookAt(r, "urls")
	if err != nil {
		return view{}, err
	}
	l.More = urlsForm{}
	return v, nil
}

func (s *site) addURLs(r *http.Request) (done, error) {
	text := r.PostFormValue("urls")
	intake, refused := s.daemon.AddURLs(r.Context(), r.PathValue("project"), lines(text))
	if refused != nil && intake == nil {
		return done{}, refused
	}
	v, l, err := s.lookAt(r, "urls")
	if err != nil {
		return done{}, err
	}
	form := urlsForm{Intake: intake}
	if refused != nil {
		form.Problem, v.status = refused.Error(), problemOf(refused).Status
	}
	if refused != nil || intake.NoURLs > 0 || intake.Refused > 0 {
		form.Text = text // to be put right
	}
	l.More = form
	return done{again: &v}, nil
}

// lines are those of a text, without those that are blank.
func lines(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line, nil) {
				return
			}
		}
	}
}
