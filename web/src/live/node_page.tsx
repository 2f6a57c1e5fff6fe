import { Nothing } from "../app/parts";

export function NodePage() {
  return <Nothing>This view shows the devices of this machine.</Nothing>;
}
