package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// A process of the user and the user's host prove to each other that they can
// read host.json. Anybody may listen at the port, or connect to it, so nothing
// that is said here is of use at another port or to another process: the host
// begins, and what it proves names its port; the answer names the instance that
// the host then told.

// Greeting is the host's proof that it is the user's.
type Greeting struct {
	Instance string `json:"instance" doc:"Of this process"`
	Proof    string `json:"proof" doc:"That this is the host of the user"`
}

// Opened says what a second start of the app led to.
type Opened struct {
	Shown bool   `json:"shown" doc:"A window came forward"`
	Link  string `json:"link,omitempty" doc:"Signs in who opens it, once"`
	Proof string `json:"proof" doc:"That the link is from the host of the user"`
}

func (a *access) greet(nonce string) Greeting {
	return Greeting{Instance: a.instance, Proof: a.id.greeting(a.port, a.instance, nonce)}
}

func (id identity) greeting(port int, instance, nonce string) string {
	return id.mac("host", strconv.Itoa(port), instance, nonce)
}

func (id identity) authorization(port int, instance string) string {
	return "Tendril " + id.mac("open", strconv.Itoa(port), instance)
}

func (id identity) linkProof(port int, instance, link string) string {
	return id.mac("link", strconv.Itoa(port), instance, link)
}

func (h *Host) findAPI(api huma.API) {
	huma.Register(api, op("POST", "/api/host/hello", "greetHost", "Prove that this is the user's host; for other processes of the user", 200), func(_ context.Context, in *struct {
		Body struct {
			Nonce string `json:"nonce" minLength:"16" maxLength:"100"`
		}
	},
	) (*of[Greeting], error) {
		return &of[Greeting]{h.access.greet(in.Body.Nonce)}, nil
	})
	huma.Register(api, op("POST", "/api/host/open", "openApp", "Bring the app forward; for other processes of the user", 200), h.openApp)
}

func (h *Host) openApp(_ context.Context, in *struct {
	Authorization string `header:"Authorization"`
	Body          struct {
		Show bool `json:"show"`
	}
},
) (*of[Opened], error) {
	a := h.access
	if !equal(in.Authorization, a.id.authorization(a.port, a.instance)) {
		return nil, problemOf(http.StatusUnauthorized, "proof", errors.New("only processes of the user who started this host may do this"))
	}
	var o Opened
	if in.Body.Show && h.Show != nil {
		o.Shown = h.Show(h.Link())
	}
	if !o.Shown {
		o.Link = h.Link()
	}
	o.Proof = a.id.linkProof(a.port, a.instance, o.Link)
	return &of[Opened]{o}, nil
}

// errNoHost means that no host of this user runs where the last one did.
var errNoHost = errors.New("no host of this user runs")

// Find asks the host of this user, if one runs, for its link, or to come forward.
// It returns nil if none does. Whoever else listens at its port learns nothing.
func Find(ctx context.Context, home string, show bool) (*Opened, error) {
	id, err := readIdentity(home)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	opened, err := id.find(asking, show)
	if err != nil {
		return nil, ctx.Err() // nobody is there, or somebody else
	}
	return opened, nil
}

func (id identity) find(ctx context.Context, show bool) (*Opened, error) {
	if id.Port == 0 {
		return nil, errNoHost
	}
	nonce := rand.Text()
	var greeting Greeting
	if err := id.ask(ctx, "hello", "", map[string]any{"nonce": nonce}, &greeting); err != nil {
		return nil, err
	}
	if !equal(greeting.Proof, id.greeting(id.Port, greeting.Instance, nonce)) {
		return nil, errNoHost
	}
	var opened Opened
	if err := id.ask(ctx, "open", id.authorization(id.Port, greeting.Instance), map[string]any{"show": show}, &opened); err != nil {
		return nil, err
	}
	if !equal(opened.Proof, id.linkProof(id.Port, greeting.Instance, opened.Link)) {
		return nil, errNoHost
	}
	return &opened, nil
}

// ask sends a request to whoever listens at the port.
func (id identity) ask(ctx context.Context, what, authorization string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	address := "http://" + net.JoinHostPort(id.Address, strconv.Itoa(id.Port))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/host/"+what, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", authorization)
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errNoHost, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(answer)
}
