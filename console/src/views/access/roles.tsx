// Roles: which principal may do what where, and the commands that give and take them.

import type { JSX } from "preact";

import type { AccessOverview, RoleAssignment } from "../../api/documents";
import { Empty } from "../../components/messages";
import { Panel } from "../../components/parts";
import { texts } from "../../texts";
import { Command, CopyCommand } from "./command";

const words = texts.access;

export function Roles({ facts }: { readonly facts: AccessOverview }): JSX.Element {
  const { roles } = facts;
  return (
    <Panel title={words.rolesHeading}>
      {!facts.takes_tokens && <p class="muted">{words.noTokens}</p>}
      {facts.is_open && <p class="notice warning">{words.isOpen}</p>}
      {facts.takes_tokens && !facts.is_open && roles.length === 0 && <Empty title={words.noRolesTitle}>{words.noRoles}</Empty>}
      {roles.length > 0 && (
        <div class="scroll" role="group" aria-label={words.rolesHeading} tabIndex={0}>
          <table aria-label={words.rolesHeading}>
            <thead>
              <tr>
                <th scope="col">{words.principal}</th>
                <th scope="col">{words.role}</th>
                <th scope="col">{words.scope}</th>
                <th scope="col">{words.takeBack}</th>
              </tr>
            </thead>
            <tbody>
              {roles.map((one, at) => <Row key={at} assignment={one} flag={facts.roles_flag} />)}
            </tbody>
          </table>
        </div>
      )}
      {facts.takes_tokens && facts.add_role_command && (
        <Command does={words.doesAddRole} command={facts.add_role_command} flag={facts.roles_flag} />
      )}
    </Panel>
  );
}

function Row({ assignment, flag }: { readonly assignment: RoleAssignment; readonly flag: string }): JSX.Element {
  const { principal, role, account, resource, remove_command: command } = assignment;
  return (
    <tr>
      <td><code>{principal}</code></td>
      <td>{role}</td>
      <td><code>{resource ? `${account}/${resource}` : account}</code></td>
      <td>{command ? <CopyCommand does={words.doesRemoveRole(role, principal)} command={command} flag={flag} /> : <span class="muted">{words.inTheFile}</span>}</td>
    </tr>
  );
}
