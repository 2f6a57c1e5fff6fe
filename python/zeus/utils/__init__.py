"""What training programs need beside the rest."""
