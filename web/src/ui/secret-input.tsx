import { Eye, EyeOff } from 'lucide-react'
import { useState, type InputHTMLAttributes } from 'react'
import { IconButton } from './button'

/** A field for a key: hidden, unless one wants to see what was typed. */
export function SecretInput(props: InputHTMLAttributes<HTMLInputElement>) {
  const [shown, setShown] = useState(false)
  return (
    <div className="secret">
      <input {...props} className="input mono" type={shown ? 'text' : 'password'} autoComplete="off" spellCheck={false} />
      <IconButton label={shown ? 'Hide the key' : 'Show the key'} aria-pressed={shown} onClick={() => setShown(!shown)}>
        {shown ? <EyeOff size={16} aria-hidden="true" /> : <Eye size={16} aria-hidden="true" />}
      </IconButton>
    </div>
  )
}
