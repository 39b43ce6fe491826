package config

import "strings"

// looksSecret reports whether a key names a secret, as apiKey does.
func looksSecret(key string) bool {
	key = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
	for _, end := range []string{"apikey", "accesskey", "secretkey", "accesskeyid", "secret", "token", "password", "credentials"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return key == "key"
}

// warnSecrets warns of secrets anywhere in the file: nothing reads them there.
func (r *reader) warnSecrets(path string, o *object) {
	for _, m := range o.members {
		here := childPath(path, m.key)
		switch {
		case m.obj != nil:
			r.warnSecrets(here, m.obj)
		case looksSecret(m.key) && !m.isNull():
			r.warnings = append(r.warnings, Warning{Path: here, Text: secretReason(path)})
		}
	}
}

// secretReason says where the secret of a section belongs.
func secretReason(path string) string {
	name := strings.TrimPrefix(path, "model.")
	if env := KeyEnv(name); env != "" {
		return "looks like a secret; secrets are not read from the settings: remove it here and keep it with: tendril secret set " + env
	}
	return "looks like a secret; secrets are not read from the settings: remove it here and set it in the environment"
}

// redacted is m without the values that look secret.
func (m *member) redacted() *member {
	switch {
	case m.obj == nil && looksSecret(m.key) && !m.isNull():
		return &member{key: m.key, raw: quote("(hidden)")}
	case m.obj == nil:
		return m
	}
	clean := &object{}
	for i := range m.obj.members {
		clean.members = append(clean.members, *m.obj.members[i].redacted())
	}
	return &member{key: m.key, obj: clean}
}
